DROP TABLE watchers;
