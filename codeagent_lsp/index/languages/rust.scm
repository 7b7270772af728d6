; Rust: what is defined, used and imported. Captures: see parse.py.

(struct_item) @struct
(union_item) @struct
(enum_item) @enum
(enum_variant) @constant
(trait_item) @interface
(impl_item) @scope
(mod_item) @module_
(type_item) @type
(associated_type) @type
(function_item) @function
(function_signature_item) @function
(macro_definition) @macro
(const_item) @constant
(static_item) @constant
[(line_comment) (block_comment) (attribute_item)] @above

(use_declaration argument: (_) @module) @import
(use_list (identifier) @taken)
(use_list (scoped_identifier name: (identifier) @taken))
(extern_crate_declaration name: (identifier) @module) @import

(identifier) @use
(type_identifier) @use
(field_identifier) @use
(call_expression function: (identifier) @call)
(call_expression function: (scoped_identifier name: (identifier) @call))
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @call)))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @call)))
(macro_invocation macro: (identifier) @call)
(macro_invocation macro: (scoped_identifier name: (identifier) @call))
(parameter pattern: (identifier) @bound)
