"""Row-level refresh: bring a table up to date from what changed, exactly as a rebuild would."""
