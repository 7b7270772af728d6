; C#: what is defined, used and imported. Captures: see parse.py.

(class_declaration) @class
(record_declaration) @class
(struct_declaration) @struct
(interface_declaration) @interface
(enum_declaration) @enum
(enum_member_declaration) @constant
(delegate_declaration) @type
(namespace_declaration) @module_
(file_scoped_namespace_declaration) @module_
(method_declaration) @function
(constructor_declaration) @function
(destructor_declaration) @function
(operator_declaration) @function
(conversion_operator_declaration) @function
(local_function_statement) @function
(property_declaration) @variable
(indexer_declaration) @variable
(event_declaration) @variable
(event_field_declaration) @variable
(field_declaration) @variable
(comment) @above

(using_directive [(identifier) (qualified_name)] @module) @import

(identifier) @use
(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression name: (identifier) @call))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @call)))
(object_creation_expression type: (identifier) @call)
(object_creation_expression type: (generic_name (identifier) @call))
(parameter name: (identifier) @bound)
