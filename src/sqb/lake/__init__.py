"""The Iceberg catalog without a JVM: heads, facts, staging, publishing, views, clean-up."""
