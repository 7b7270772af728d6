; Beyond c.scopes.scm: lambdas, loops over ranges and caught exceptions of C++.

(lambda_expression) @function
(field_declaration declarator: (reference_declarator (function_declarator) @scope))
[(for_range_loop) (catch_clause)] @scope

(optional_parameter_declaration declarator: (_) @local)
(for_range_loop declarator: (_) @local)
