; Python: scopes and what is bound in them. Captures: see scopes.py.

[(function_definition) (lambda)] @function
[(list_comprehension) (set_comprehension) (dictionary_comprehension) (generator_expression)] @scope
(class_definition) @class

(function_definition name: (identifier) @named)
(class_definition name: (identifier) @named)
(parameters (_) @local)
(lambda_parameters (_) @local)
(assignment left: (_) @hoisted)
(augmented_assignment left: (identifier) @hoisted)
(named_expression name: (identifier) @hoisted)
(for_statement left: (_) @hoisted)
(for_in_clause left: (_) @local)
(as_pattern_target (_) @hoisted)
(case_pattern (dotted_name . (identifier) @hoisted .))
(keyword_pattern (dotted_name . (identifier) @hoisted .))
(splat_pattern (identifier) @hoisted)
(global_statement (identifier) @free)
(nonlocal_statement (identifier) @free)
