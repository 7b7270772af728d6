; Java: what is defined, used and imported. Captures: see parse.py.

(class_declaration) @class
(record_declaration) @class
(interface_declaration) @interface
(annotation_type_declaration) @interface
(enum_declaration) @enum
(enum_constant) @constant
(method_declaration) @function
(constructor_declaration) @function
(compact_constructor_declaration) @function
(annotation_type_element_declaration) @function
(field_declaration) @variable
(constant_declaration) @variable
[(line_comment) (block_comment)] @above

(import_declaration (scoped_identifier) @module) @import
(import_declaration (asterisk) @taken)

(identifier) @use
(type_identifier) @use
(method_invocation name: (identifier) @call)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (generic_type (type_identifier) @call))
(formal_parameter name: (identifier) @bound)
(package_declaration (scoped_identifier (identifier) @bound))
