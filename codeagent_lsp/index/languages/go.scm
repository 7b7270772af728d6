; Go: what is defined, used and imported. Captures: see parse.py.

(function_declaration) @function
(method_declaration) @method
(type_spec type: (struct_type)) @struct
(type_spec type: (interface_type)) @interface
(type_spec) @type
(type_alias) @type
(method_elem) @function
(source_file (const_declaration (const_spec) @constant))
(source_file (var_declaration (var_spec) @variable))
(source_file (var_declaration (var_spec_list (var_spec) @variable)))
(type_declaration . (_) .) @wrapper
(source_file (const_declaration . (const_spec) .) @wrapper)
(source_file (var_declaration . (var_spec) .) @wrapper)
(comment) @above

(import_spec path: (interpreted_string_literal) @module) @import

(identifier) @use
(type_identifier) @use
(field_identifier) @use
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))
(parameter_declaration name: (identifier) @bound)
