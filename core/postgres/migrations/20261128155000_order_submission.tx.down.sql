ALTER TABLE transfers DROP submission_due_at, DROP submission_detail, DROP submission_status, DROP submitted_at, DROP submit;
