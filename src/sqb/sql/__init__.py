"""All that knows sqlglot and tokens: canonical form, references, expansion, splicing."""
