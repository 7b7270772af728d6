; Go: scopes and what is bound in them. Captures: see scopes.py.

[(function_declaration) (method_declaration) (func_literal) (function_type) (method_elem)] @function
[(block) (if_statement) (for_statement) (expression_switch_statement) (type_switch_statement) (expression_case)
 (default_case) (type_case) (communication_case)] @scope

(parameter_declaration name: (identifier) @local)
(variadic_parameter_declaration name: (identifier) @local)
(short_var_declaration left: (expression_list (identifier) @local)) @after
(var_spec name: (identifier) @local) @after
(const_spec name: (identifier) @local) @after
(range_clause left: (expression_list (identifier) @local))
(type_switch_statement alias: (expression_list (identifier) @local))
(receive_statement left: (expression_list (identifier) @local))
