"""Java, jars and Spark sessions."""
