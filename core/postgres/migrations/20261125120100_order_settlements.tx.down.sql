ALTER TABLE transfers
    DROP deployment, DROP input_oracle, DROP output_oracle, DROP expires,
    ALTER origin_domain DROP DEFAULT, ALTER destination_domain DROP DEFAULT;
