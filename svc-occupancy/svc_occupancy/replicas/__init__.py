"""Companies, properties and units: rows of other contexts, kept so that turns need nobody else."""
