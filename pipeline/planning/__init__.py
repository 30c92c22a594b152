"""Plans of replica places for the pipeline: layouts out of its tables, plans as files, and their figures. No Spark.

The planner is `controller.planning`, that of `quorate brokers drain` and `quorate cluster balance`: it replays nothing.
`tables` makes a layout of the pipeline's tables; `directories` finds the replicas that are lost in it; `files` writes a
plan in the form that Kafka's reassignment tool and `quorate reassign apply` take; `summary` has it judged and counted.
"""
