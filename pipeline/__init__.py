"""What happened: Spark jobs over the log; the only importer of PySpark, with a replay of its own."""
