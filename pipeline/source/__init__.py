"""The Spark data source ``quorate-log``: one row for each record of a log."""
