; C#: scopes and what is bound in them. Captures: see scopes.py.

[(method_declaration) (constructor_declaration) (lambda_expression) (anonymous_method_expression)
 (local_function_statement) (accessor_declaration) (indexer_declaration) (operator_declaration)
 (conversion_operator_declaration) (delegate_declaration)] @function
[(block) (for_statement) (foreach_statement) (catch_clause) (using_statement) (switch_section)
 (class_declaration) (record_declaration) (struct_declaration)] @scope

(local_function_statement name: (identifier) @named)
(parameter name: (identifier) @local)
(implicit_parameter) @local
(local_declaration_statement (variable_declaration (variable_declarator name: (identifier) @local)))
(for_statement initializer: (variable_declaration (variable_declarator name: (identifier) @local)))
(using_statement (variable_declaration (variable_declarator name: (identifier) @local)))
(foreach_statement left: (identifier) @local)
(declaration_expression name: (identifier) @local)
(declaration_pattern name: (identifier) @local)
(catch_declaration name: (identifier) @local)
