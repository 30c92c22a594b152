"""The growth and the evenness of a cluster: figures from the version tables, and the page that shows them.

Nothing here knows Spark. `moments` are the times at which a history is looked at; `trend` adds up what changed between
them; `report` says it in lines, `page` shows it.
"""
