; Java: scopes and what is bound in them. Captures: see scopes.py.

[(method_declaration) (constructor_declaration) (lambda_expression)] @function
[(block) (for_statement) (enhanced_for_statement) (catch_clause) (try_with_resources_statement)
 (switch_block_statement_group) (record_declaration)] @scope

(formal_parameter name: (identifier) @local)
(spread_parameter (variable_declarator name: (identifier) @local))
(lambda_expression parameters: (identifier) @local)
(inferred_parameters (identifier) @local)
(local_variable_declaration (variable_declarator name: (identifier) @local))
(enhanced_for_statement name: (identifier) @local)
(catch_formal_parameter name: (identifier) @local)
(resource name: (identifier) @local)
