; Rust: scopes and what is bound in them. Captures: see scopes.py.

[(function_item) (closure_expression) (function_type) (function_signature_item)] @function
[(block) (match_arm) (for_expression) (if_expression) (while_expression)] @scope

(block (function_item name: (identifier) @named))
(parameter pattern: (_) @local)
(closure_parameters (_) @local)
(let_declaration pattern: (_) @local) @after
(for_expression pattern: (_) @local)
(match_arm pattern: (match_pattern (_) @local))
(let_condition pattern: (_) @local)
