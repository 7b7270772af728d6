; Ruby: scopes and what is bound in them. Captures: see scopes.py.

[(method) (singleton_method)] @function
[(block) (do_block) (lambda)] @scope

(method_parameters (_) @local)
(lambda_parameters (_) @local)
(block_parameters (_) @local)
(assignment left: (_) @local)
(operator_assignment left: (identifier) @local)
(for pattern: (_) @local)
(exception_variable (identifier) @local)
