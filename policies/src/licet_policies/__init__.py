"""Policy packs as data: `licet:nothing`, `compute`, `data`, `agent`, `regulated` and `trusted`."""
