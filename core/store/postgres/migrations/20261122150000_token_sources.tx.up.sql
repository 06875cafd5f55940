-- Where a token's definition was published and its licence as an SPDX expression; NULL where that is not recorded.
ALTER TABLE tokens ADD COLUMN source text, ADD COLUMN license text;
