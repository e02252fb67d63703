"""Policy packs as data: `licet:compute`, `licet:nothing`, `licet:trusted`."""
