"""A browser without a screen, told over its own protocol what to do: for pictures of the web page, and its tests."""
