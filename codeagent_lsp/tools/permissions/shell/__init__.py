"""The analysis of shell command lines by their words: grammar, harmless forms, denied forms, rules."""
