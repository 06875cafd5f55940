-- What was deleted stays deleted: nobody could use it.
SELECT 1;
