"""From segmented text to ids: vocabularies, phrases, the token store."""
