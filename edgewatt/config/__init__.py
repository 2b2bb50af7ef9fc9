"""Configuration: strict YAML with positions, the models it fills, and the points it expands to.

Nothing is imported here: a worker process needs `edgewatt.config.kinds` without the models, whose library takes a
third of its start.
"""
