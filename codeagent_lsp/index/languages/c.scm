; C: what is defined, used and imported. Captures: see parse.py.

(function_definition) @function
(declaration declarator: (function_declarator)) @function
(declaration declarator: (pointer_declarator declarator: (function_declarator))) @function
(struct_specifier name: (_) body: (_)) @struct
(union_specifier name: (_) body: (_)) @struct
(enum_specifier name: (_) body: (_)) @enum
(enumerator) @constant
(type_definition) @type
(preproc_def) @constant
(preproc_function_def) @macro
(translation_unit (declaration declarator: (init_declarator)) @variable)
(translation_unit (declaration declarator: (identifier)) @variable)
(comment) @above

(preproc_include path: (_) @module) @import

(identifier) @use
(type_identifier) @use
(field_identifier) @use
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(parameter_declaration declarator: (identifier) @bound)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @bound))
