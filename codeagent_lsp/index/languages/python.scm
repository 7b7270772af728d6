; Python: what is defined, used and imported. Captures: see parse.py.

(class_definition) @class
(function_definition) @function
(type_alias_statement) @type
(module (expression_statement (assignment left: (identifier)) @variable))
(module (if_statement (block (expression_statement (assignment left: (identifier)) @variable))))
(class_definition body: (block (expression_statement (assignment left: (identifier)) @variable)))
(decorated_definition) @wrapper
(comment) @above

(import_statement) @import
(import_statement name: (dotted_name) @module)
(import_statement name: (aliased_import name: (dotted_name) @module))
(import_from_statement) @import
(import_from_statement module_name: (_) @module)
(import_from_statement name: (dotted_name) @taken)
(import_from_statement name: (aliased_import name: (dotted_name) @taken))
(import_from_statement (wildcard_import) @taken)

(identifier) @use
(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))
(parameters (identifier) @bound)
(lambda_parameters (identifier) @bound)
(typed_parameter (identifier) @bound)
(default_parameter name: (identifier) @bound)
(typed_default_parameter name: (identifier) @bound)
