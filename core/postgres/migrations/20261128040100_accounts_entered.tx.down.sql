UPDATE accounts SET entered_at = NULL;
