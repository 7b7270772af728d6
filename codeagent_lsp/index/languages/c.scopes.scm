; C: scopes and what is bound in them. Captures: see scopes.py.

(function_definition) @function
[(compound_statement) (for_statement)] @scope
; The parameters of a declaration and of a pointer to a function are known in it alone.
(parameter_declaration declarator: [(function_declarator) (abstract_function_declarator)] @scope)
(declaration declarator: [
  (function_declarator) @scope
  (pointer_declarator declarator: (function_declarator) @scope)
  (init_declarator declarator: (function_declarator) @scope)
])
(type_definition declarator: (function_declarator) @scope)
(field_declaration declarator: [
  (function_declarator) @scope
  (pointer_declarator declarator: (function_declarator) @scope)
])

(parameter_declaration declarator: (_) @local)
(compound_statement (declaration declarator: (_) @local))
(for_statement initializer: (declaration declarator: (_) @local))
