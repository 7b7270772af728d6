"""What a shell command line says by its words alone: grammar, harmless forms, denied forms, rules."""
