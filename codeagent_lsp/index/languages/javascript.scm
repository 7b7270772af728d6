; Beyond ecmascript.scm: fields, methods that are assigned and parameters of JavaScript.

(field_definition property: (_) value: [(arrow_function) (function_expression)]) @function
(class_body (field_definition property: (_)) @variable)
(assignment_expression left: (member_expression) right: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression) right: (class)) @class
(formal_parameters (identifier) @bound)
