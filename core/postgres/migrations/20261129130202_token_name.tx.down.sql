ALTER TABLE tokens DROP name;
