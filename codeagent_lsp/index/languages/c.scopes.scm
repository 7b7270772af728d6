; C: scopes and what is bound in them. Captures: see scopes.py.

(function_definition) @function
[(compound_statement) (for_statement)] @scope

(parameter_declaration declarator: (_) @local)
(compound_statement (declaration declarator: (_) @local))
(for_statement initializer: (declaration declarator: (_) @local))
