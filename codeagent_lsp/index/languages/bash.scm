; Bash: what is defined, used and imported. Captures: see parse.py.

(function_definition) @function
(program (variable_assignment name: (variable_name)) @variable)
(program (declaration_command (variable_assignment name: (variable_name)) @variable))
(comment) @above

((command name: (command_name (word) @_how) . argument: [(word) (string) (raw_string) (concatenation)] @module) @import
  (#any-of? @_how "source" "."))

(variable_name) @use
(command_name (word) @call @use)
