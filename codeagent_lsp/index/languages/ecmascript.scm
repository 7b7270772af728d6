; What JavaScript and TypeScript have in common: what is defined, used and imported. Captures: see parse.py.

(class_declaration) @class
(function_declaration) @function
(generator_function_declaration) @function
(method_definition) @function
(variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) value: (class)) @class
(program [
  (lexical_declaration (variable_declarator name: (identifier)) @variable)
  (variable_declaration (variable_declarator name: (identifier)) @variable)
  (export_statement (lexical_declaration (variable_declarator name: (identifier)) @variable))
])
(pair key: (property_identifier) value: [(arrow_function) (function_expression)]) @function
(export_statement) @wrapper
(lexical_declaration . (variable_declarator) .) @wrapper
(variable_declaration . (variable_declarator) .) @wrapper
(comment) @above

(import_statement) @import
(import_statement source: (string (string_fragment) @module))
(import_clause (identifier) @taken)
(import_specifier name: (identifier) @taken)
(namespace_import) @taken
(export_statement source: (string (string_fragment) @module)) @import
((call_expression function: (identifier) @_require arguments: (arguments . (string (string_fragment) @module))) @import
  (#eq? @_require "require"))
(call_expression function: (import) arguments: (arguments . (string (string_fragment) @module))) @import

(identifier) @use
(property_identifier) @use
(shorthand_property_identifier) @use
(private_property_identifier) @use
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: [(property_identifier) (private_property_identifier)] @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression property: (property_identifier) @call))
(arrow_function parameter: (identifier) @bound)
