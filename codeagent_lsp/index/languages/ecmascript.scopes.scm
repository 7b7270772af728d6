; JavaScript and TypeScript: scopes and what is bound in them. Captures: see scopes.py.

[(function_declaration) (generator_function_declaration) (function_expression) (generator_function) (arrow_function)
 (method_definition)] @function
[(statement_block) (for_statement) (for_in_statement) (catch_clause) (switch_body) (class_static_block)] @scope

(function_declaration name: (identifier) @named)
(generator_function_declaration name: (identifier) @named)
(class_declaration name: (_) @named)
(function_expression name: (identifier) @local)
(formal_parameters (_) @local)
(arrow_function parameter: (identifier) @local)
(lexical_declaration (variable_declarator name: (_) @local))
(variable_declaration (variable_declarator name: (_) @hoisted))
(for_in_statement kind: _ left: (_) @local)
(catch_clause parameter: (_) @local)
