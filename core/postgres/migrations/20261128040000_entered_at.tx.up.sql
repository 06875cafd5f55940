-- When somebody first entered an account: the first session of it. NULL for never, and for first sign-ins of versions that do not write it.
ALTER TABLE accounts ADD COLUMN entered_at timestamptz;
