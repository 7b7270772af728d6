; Beyond ecmascript.scm: types, fields and parameters of TypeScript.

(abstract_class_declaration) @class
(interface_declaration) @interface
(enum_declaration) @enum
(enum_body (property_identifier) @constant)
(enum_assignment name: (property_identifier)) @constant
(type_alias_declaration) @type
(internal_module) @module_
(module) @module_
(function_signature) @function
(abstract_method_signature) @function
(method_signature) @function
(property_signature) @variable
(public_field_definition name: (_) value: [(arrow_function) (function_expression)]) @function
(class_body (public_field_definition name: (_)) @variable)
(ambient_declaration) @wrapper
(class_body (decorator) @above)
(import_statement (import_require_clause source: (string (string_fragment) @module)))
(type_identifier) @use
(required_parameter pattern: (identifier) @bound)
(optional_parameter pattern: (identifier) @bound)
