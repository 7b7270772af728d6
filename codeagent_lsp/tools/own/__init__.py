"""Tools that users write themselves, each source of them in a process of its own and only after the user's trust."""
