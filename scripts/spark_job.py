"""The program for `spark-submit`: `spark-submit --py-files quorate.zip scripts/spark_job.py JOB ...`."""

import sys

from quorate.scripts.cli.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "pipeline")
    main()
