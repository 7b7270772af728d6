; Beyond ecmascript.scopes.scm: types of functions, whose parameters are known in them alone.

[(function_type) (constructor_type) (function_signature) (method_signature) (abstract_method_signature) (call_signature)
 (construct_signature)] @function
