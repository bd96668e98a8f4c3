"""Facts in, an immutable plan out: no Spark, no clock, no file system."""
