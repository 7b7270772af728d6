"""The server's side of lending the editor: asking the user, and the socket for those that are allowed."""
