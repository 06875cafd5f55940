ALTER TABLE transfers DROP labels;
