// What calls say that are wrong, and what is read back of attributes: codes and
// texts that TensorFlow's library gives to the letter.
#include "check.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"

#define CHECK_TEXT(status, code, text)                                      \
  do {                                                                      \
    if (TF_GetCode(status) != (code) ||                                     \
        strcmp(TF_Message(status), text) != 0) {                            \
      fprintf(stderr, "%s:%d: code %d: %s\n  wanted %d: %s\n", __FILE__,    \
              __LINE__, (int)TF_GetCode(status), TF_Message(status),        \
              (int)(code), text);                                           \
      exit(1);                                                              \
    }                                                                       \
    TF_SetStatus(status, TF_OK, "");                                        \
  } while (0)

static TF_Operation* Shaped(TF_Graph* g, const char* name, TF_DataType type,
                            int rank, int64_t a, int64_t b, TF_Status* s) {
  TF_OperationDescription* d = TF_NewOperation(g, "Placeholder", name);
  TF_SetAttrType(d, "dtype", type);
  const int64_t dims[] = {a, b};
  TF_SetAttrShape(d, "shape", dims, rank);
  TF_Operation* op = TF_FinishOperation(d, s);
  CHECK_OK(s);
  return op;
}

// ---- Descriptions.

static void Inputs(TF_Graph* g, TF_Operation* p, TF_Operation* i,
                   TF_Status* s) {
  CHECK(Binary(g, "LogicalAnd", "la", First(p), First(p), s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "2 errors while building NodeDef 'la' using Op<name=LogicalAnd; "
             "signature=x:bool, y:bool -> z:bool; is_commutative=true>:\n"
             "Input 'x' passed float expected bool\n"
             "Input 'y' passed float expected bool");
  const TF_Output both[] = {First(p), First(i)};
  const TF_Output twice[] = {First(p), First(p)};
  TF_OperationDescription* d = TF_NewOperation(g, "AddN", "an");
  TF_AddInputList(d, both, 2);
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Input 'inputs' passed int32 expected float while building "
              "NodeDef 'an' using Op<name=AddN; signature=inputs:N*T -> sum:T");
  d = TF_NewOperation(g, "Pack", "pk");
  TF_AddInputList(d, twice, 2);
  TF_SetAttrInt(d, "N", 3);
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Inconsistent values for attr 'N' 2 vs. 3 while building NodeDef "
             "'pk' using Op<name=Pack; signature=values:N*T -> output:T; "
             "attr=N:int,min=1; attr=T:type; attr=axis:int,default=0>");
  d = TF_NewOperation(g, "IdentityN", "idn");
  TF_AddInputList(d, both, 2);
  const TF_DataType types[] = {TF_FLOAT};
  TF_SetAttrTypeList(d, "T", types, 1);
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Inconsistent values for attr 'T' [DT_FLOAT, DT_INT32] vs. "
             "[DT_FLOAT] while building NodeDef 'idn' using "
             "Op<name=IdentityN; signature=input: -> output:; "
             "attr=T:list(type),min=1>");
  d = TF_NewOperation(g, "Neg", "n6");
  TF_AddInput(d, First(p));
  TF_SetAttrType(d, "T", TF_INT32);
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32 while "
              "building NodeDef 'n6' using Op<name=Neg;");
}

static void Attributes(TF_Graph* g, TF_Operation* p, TF_Operation* i,
                       TF_Status* s) {
  CHECK(TF_FinishOperation(TF_NewOperation(g, "Const", "co"), s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "NodeDef missing attrs 'dtype', 'value' from Op<name=Const; "
             "signature= -> output:dtype; attr=value:tensor; "
             "attr=dtype:type>; NodeDef: {{node co}}");
  TF_OperationDescription* d = TF_NewOperation(g, "Sin", "si");
  TF_AddInput(d, First(i));
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Value for attr 'T' of int32 is not in the list of allowed "
             "values: bfloat16, half, float, double, complex64, complex128\n\t;"
             " NodeDef: {{node si}}; Op<name=Sin; signature=x:T -> y:T; "
             "attr=T:type,allowed=[DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE, "
             "DT_COMPLEX64, DT_COMPLEX128]>");
  d = TF_NewOperation(g, "Placeholder", "sp");
  TF_SetAttrTensorShapeProto(d, "shape", "\xff\xff", 2, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Unparseable TensorShapeProto");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  CHECK(TF_FinishOperation(d, s) != NULL);
  // Places that are set as an attribute and those of TF_ColocateWith.
  d = TF_NewOperation(g, "Neg", "near");
  TF_AddInput(d, First(p));
  const void* places[] = {"loc:@i"};
  const size_t lengths[] = {6};
  TF_SetAttrStringList(d, "_class", places, lengths, 1);
  TF_ColocateWith(d, p);
  TF_Operation* near = TF_FinishOperation(d, s);
  CHECK_OK(s);
  CHECK(TF_OperationGetAttrMetadata(near, "_class", s).list_size == 2);
}

// ---- What getters say of names and kinds that are not there.

static void Getters(TF_Operation* p, TF_Status* s) {
  int64_t number;
  char text[8];
  TF_DataType type;
  TF_OperationGetAttrInt(p, "nope", &number, s);
  CHECK_TEXT(s, TF_NOT_FOUND,
             "No attr named 'nope' in NodeDef:\n\t [[{{node p}}]]");
  TF_OperationGetAttrShape(p, "nope", &number, 1, s);
  CHECK_TEXT(s, TF_NOT_FOUND,
             "No attr named 'nope' in NodeDef:\n\t [[{{node p}}]]");
  TF_OperationGetAttrIntList(p, "nope", &number, 1, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Operation 'p' has no attr named 'nope'.");
  TF_OperationGetAttrString(p, "nope", text, 8, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Operation 'p' has no attr named 'nope'.");
  TF_OperationGetAttrString(p, "dtype", text, 8, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Attribute 'dtype' is not a string");
  TF_OperationGetAttrIntList(p, "shape", &number, 1, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Value for 'shape' is not a list.");
  void* strings[1];
  size_t lengths[1];
  TF_OperationGetAttrStringList(p, "shape", strings, lengths, 1, text, 8, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Value for 'shape' is not a list");
  TF_OperationGetAttrType(p, "shape", &type, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "AttrValue had value with type 'shape' when 'type' expected");
  TF_Buffer* shape = TF_NewBuffer();
  TF_OperationGetAttrTensorShapeProto(p, "dtype", shape, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Value for 'dtype' is not a shape.");
  TF_DeleteBuffer(shape);
}

// ---- Shapes.

static void Shapes(TF_Graph* g, TF_Operation* p, TF_Status* s) {
  int64_t dims[] = {2, 3};
  const TF_Output third = {p, 3};
  TF_GraphSetTensorShape(g, third, dims, 2, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "output_port '3' is out of range, node 'p' has 1 outputs");
  TF_OperationDescription* d = TF_NewOperation(g, "Neg", "read");
  TF_AddInput(d, First(p));
  TF_Operation* negative = TF_FinishOperation(d, s);
  CHECK_OK(s);
  const TF_Input input = {negative, 0};
  TF_UpdateEdge(g, First(Shaped(g, "q", TF_FLOAT, 1, 300, 0, s)), input, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Cannot update edge, incompatible shapes: [300] and [2,3].");
  // Labels of any rank are a matrix, as logits are.
  TF_Operation* loss = Binary(g, "SoftmaxCrossEntropyWithLogits", "xe",
                              First(p), First(Placeholder(g, "u", TF_FLOAT, s)),
                              s);
  CHECK_OK(s);
  const TF_Output back = {loss, 1};
  TF_GraphGetTensorShape(g, back, dims, 2, s);
  CHECK_OK(s);
  CHECK(dims[0] == 2 && dims[1] == 3);
  d = TF_NewOperation(g, "Cholesky", "ch");
  TF_AddInput(d, First(Shaped(g, "m", TF_FLOAT, 2, -1, 3, s)));
  TF_Operation* root = TF_FinishOperation(d, s);
  CHECK_OK(s);
  TF_GraphGetTensorShape(g, First(root), dims, 2, s);
  CHECK(dims[0] == 3 && dims[1] == 3);
}

// ---- Runs.

static void Runs(TF_Graph* g, TF_Operation* p, TF_Status* s) {
  TF_Session* session = Session(g, s);
  TF_OperationDescription* d = TF_NewOperation(g, "Neg", "neg");
  TF_AddInput(d, First(p));
  const TF_Output neg = First(TF_FinishOperation(d, s)), in = First(p);
  const int64_t dims[] = {2, 3};
  const float values[] = {1, 2, 3, 4, 5, 6};
  TF_Tensor* fed = Floats(dims, 2, values);
  TF_Tensor* out[2] = {NULL, NULL};
  const TF_Output fetches[] = {neg, in};
  TF_SessionRun(session, NULL, &in, &fed, 1, fetches, out, 2, NULL, 0, NULL, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "p:0 is both fed and fetched.");
  CHECK(out[0] == NULL && out[1] == NULL);
  TF_Buffer* metadata = TF_NewBuffer();
  for (int i = 0; i < 2; ++i) {
    TF_Buffer* options = TF_NewBufferFromString("\x08\x03", 2);
    TF_SessionRun(session, options, &in, &fed, 1, &neg, out, 1, NULL, 0,
                  metadata, s);
    TF_DeleteBuffer(options);
    if (i == 0) {
      CHECK_OK(s);
      CHECK(metadata->length > 0);
      TF_DeleteTensor(out[0]);
    }
  }
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Passing non-empty run_metadata is invalid.");
  TF_DeleteBuffer(metadata);
  // A partial run that has given everything is there no more.
  const char* handle = NULL;
  TF_SessionPRunSetup(session, &in, 1, &neg, 1, NULL, 0, &handle, s);
  CHECK_OK(s);
  TF_SessionPRun(session, handle, &in, &fed, 1, &neg, out, 1, NULL, 0, s);
  CHECK_OK(s);
  CHECK(((float*)TF_TensorData(out[0]))[5] == -6);
  TF_DeleteTensor(out[0]);
  TF_SessionPRun(session, handle, NULL, NULL, 0, &neg, out, 1, NULL, 0, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Must run 'setup' before performing partial runs!");
  TF_DeletePRunHandle(handle);
  TF_DeleteTensor(fed);
  TF_DeleteSession(session, s);
  CHECK_OK(s);
}

// ---- Functions.

static TF_Function* Negative(TF_Graph* g, TF_Operation* p, TF_Status* s) {
  TF_Operation* neg = TF_GraphOperationByName(g, "neg");
  const TF_Operation* body[] = {neg};
  const TF_Output in = First(p), out = First(neg);
  TF_Function* f = TF_GraphToFunction(g, "Negative", 0, 1, body, 1, &in, 1,
                                      &out, NULL, NULL, NULL, s);
  CHECK_OK(s);
  return f;
}

// A function's gradient, once it has one, stays.
static void Gradients(TF_Graph* from, TF_Operation* p, TF_Function* f,
                      TF_Status* s) {
  TF_Operation* neg = TF_GraphOperationByName(from, "neg");
  TF_Operation* sum = Binary(from, "Add", "sum", First(p), First(p), s);
  CHECK_OK(s);
  const TF_Operation* body[] = {sum};
  const TF_Output ins[] = {First(p), First(neg)}, out = First(sum);
  TF_Function* made[2];
  for (int k = 0; k < 2; ++k) {
    made[k] = TF_GraphToFunction(from, k ? "Second" : "First", 0, 1, body, 2,
                                 ins, 1, &out, NULL, NULL, NULL, s);
    CHECK_OK(s);
  }
  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, f, made[0], s);
  CHECK_OK(s);
  TF_GraphCopyFunction(g, f, made[1], s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Cannot assign gradient function 'Second' to 'Negative' because "
             "it already has gradient function 'First'");
  for (int k = 0; k < 2; ++k) TF_DeleteFunction(made[k]);
  TF_DeleteGraph(g);
}

static void Functions(TF_Function* f, TF_Operation* i, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, f, NULL, s);
  CHECK_OK(s);
  TF_OperationDescription* d = TF_NewOperation(g, "Negative", "call");
  TF_AddInput(d, First(Placeholder(g, "i", TF_INT32, s)));
  CHECK(TF_FinishOperation(d, s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Input 'p' passed int32 expected float while building NodeDef "
             "'call' using Op<name=Negative; signature=p:float -> neg:float>");
  CHECK(TF_FinishOperation(TF_NewOperation(g, "Negative", "none"), s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "0 inputs specified of 1 inputs in Op while building NodeDef "
             "'none' using Op<name=Negative; signature=p:float -> neg:float>");
  TF_GraphRemoveFunction(g, "Nothing", s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Tried to remove non-existent function 'Nothing'.");
  CHECK(TF_FunctionImportFunctionDef("\xff", 1, s) == NULL);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
  TF_FunctionSetAttrValueProto(f, "a", "\xff", 1, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "Unparseable AttrValue proto passed to "
             "TF_FunctionSetAttrValueProto");
  TF_DeleteGraph(g);
}

// ---- Loops.

static void FillLoop(TF_WhileParams* p, TF_Status* s) {
  p->name = "counting";
  p->cond_output = First(
      Binary(p->cond_graph, "Less", "less", p->cond_inputs[0],
             First(Const(p->cond_graph, "ten", Int32(10), s)), s));
  CHECK_OK(s);
  p->body_outputs[0] =
      First(Binary(p->body_graph, "Add", "more", p->body_inputs[0],
                   First(Const(p->body_graph, "one", Int32(1), s)), s));
  CHECK_OK(s);
}

static void Loops(TF_Graph* g, TF_Status* s) {
  TF_Output in = First(Placeholder(g, "from", TF_INT32, s)), out;
  for (int i = 0; i < 2; ++i) {
    TF_WhileParams params = TF_NewWhile(g, &in, 1, s);
    CHECK_OK(s);
    FillLoop(&params, s);
    TF_FinishWhile(&params, s, &out);
    if (i == 0) CHECK_OK(s);
  }
  CHECK_TEXT(s, TF_INVALID_ARGUMENT,
             "WhileContext with frame name 'counting' already exists");
  CHECK(TF_GraphOperationByName(g, "counting/cond/less") != NULL);
  CHECK(TF_GraphOperationByName(g, "counting/body/more") != NULL);
  int64_t at_once;
  TF_OperationGetAttrInt(TF_GraphOperationByName(g, "counting/Enter"),
                         "parallel_iterations", &at_once, s);
  CHECK_OK(s);
  CHECK(at_once == 10);
}

// ---- Imports, and what is said of ops.

static void Imports(TF_Graph* g, TF_Status* s) {
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_Buffer* bytes = TF_NewBufferFromString("\xff\xff", 2);
  TF_GraphImportGraphDef(g, bytes, options, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Invalid GraphDef");
  TF_DeleteBuffer(bytes);
  bytes = TF_NewBufferFromString("", 0);
  const char* const prefixes[] = {"a b", "_q"};
  const char* const texts[] = {
      "Imported node name prefix 'a b/' would lead to invalid node names",
      "Imported node name prefix '_q/' would lead to invalid node names"};
  for (int i = 0; i < 2; ++i) {
    TF_ImportGraphDefOptionsSetPrefix(options, prefixes[i]);
    TF_GraphImportGraphDef(g, bytes, options, s);
    CHECK_TEXT(s, TF_INVALID_ARGUMENT, texts[i]);
  }
  TF_DeleteBuffer(bytes);
  TF_DeleteImportGraphDefOptions(options);
}

static void ApiDefs(TF_Status* s) {
  TF_Buffer* ops = TF_GetAllOpList();
  TF_ApiDefMap* map = TF_NewApiDefMap(ops, s);
  CHECK_OK(s);
  const char* text =
      "op {\n graph_op_name: \"Abs\"\n description: <<END\nmany\nlines\nEND\n}";
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CHECK_OK(s);
  TF_Buffer* abs = TF_ApiDefMapGet(map, "Abs", 3, s);
  CHECK_OK(s);
  // Lines are parted by their ends, and the last one has none.
  const char said[] = "many\nlines";
  int found = 0;
  for (size_t i = 1; i + sizeof said <= abs->length; ++i) {
    const char* at = (const char*)abs->data + i;
    if (memcmp(at, said, sizeof said - 1) == 0) {
      found = at[-1] == (int)sizeof said - 1;  // the field's length
    }
  }
  CHECK(found);
  TF_DeleteBuffer(abs);
  TF_ApiDefMapPut(map, text, strlen(text), s);
  CHECK_TEXT(s, TF_FAILED_PRECONDITION,
             "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been "
             "called.");
  TF_DeleteApiDefMap(map);
  TF_DeleteBuffer(ops);
}

// ---- At once.

static TFE_Op* Eager(TFE_Context* c, const char* name, TFE_TensorHandle* a,
                     TFE_TensorHandle* b, TF_Status* s) {
  TFE_Op* op = TFE_NewOp(c, name, s);
  CHECK_OK(s);
  if (a) TFE_OpAddInput(op, a, s);
  if (b) TFE_OpAddInput(op, b, s);
  CHECK_OK(s);
  return op;
}

static void Fails(TFE_Op* op, TF_Code code, const char* text, TF_Status* s) {
  TFE_TensorHandle* out;
  int count = 1;
  TFE_Execute(op, &out, &count, s);
  CHECK_TEXT(s, code, text);
  TFE_DeleteOp(op);
}

static TFE_TensorHandle* Handle(TF_Tensor* t, TF_Status* s) {
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, s);
  CHECK_OK(s);
  TF_DeleteTensor(t);
  return h;
}

static void AtOnce(TFE_Context* c, TF_Function* f, TF_Status* s) {
  const int64_t four[] = {2, 2}, three[] = {3};
  const float values[] = {1, 2, 3, 4};
  TFE_TensorHandle* a = Handle(Floats(four, 2, values), s);
  TFE_TensorHandle* b = Handle(Floats(three, 1, values), s);
  TFE_TensorHandle* i = Handle(Int32(7), s);
  Fails(Eager(c, "Add", a, b, s), TF_INVALID_ARGUMENT,
        "Incompatible shapes: [2,2] vs. [3]", s);
  Fails(Eager(c, "Cast", a, NULL, s), TF_NOT_FOUND,
        "No attr named 'DstT' in NodeDef:\n\t [[{{node Cast}}]]", s);
  TFE_ContextAddFunction(c, f, s);
  CHECK_OK(s);
  Fails(Eager(c, "Negative", i, NULL, s), TF_INVALID_ARGUMENT,
        "cannot compute Negative as input #0(zero-based) was expected to be a "
        "float tensor but is a int32 tensor",
        s);
  TFE_ContextAddFunctionDef(c, "\xff", 1, s);
  CHECK_TEXT(s, TF_INVALID_ARGUMENT, "Invalid FunctionDef proto");
  TFE_DeleteTensorHandle(a);
  TFE_DeleteTensorHandle(b);
  TFE_DeleteTensorHandle(i);
}

// What a thread chooses for one context is that one's alone.
static void Policies(TFE_Context* c, TF_Status* s) {
  TFE_ContextSetThreadLocalDevicePlacementPolicy(c,
                                                 TFE_DEVICE_PLACEMENT_WARN);
  CHECK(TFE_ContextGetDevicePlacementPolicy(c) == TFE_DEVICE_PLACEMENT_WARN);
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_ContextOptionsSetDevicePlacementPolicy(options,
                                             TFE_DEVICE_PLACEMENT_EXPLICIT);
  TFE_Context* other = TFE_NewContext(options, s);
  CHECK_OK(s);
  CHECK(TFE_ContextGetDevicePlacementPolicy(other) ==
        TFE_DEVICE_PLACEMENT_EXPLICIT);
  TFE_DeleteContext(other);
  TFE_DeleteContextOptions(options);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  TF_Graph* g = TF_NewGraph();
  TF_Operation* p = Shaped(g, "p", TF_FLOAT, 2, 2, 3, s);
  TF_Operation* i = Shaped(g, "i", TF_INT32, 2, 2, 3, s);
  Inputs(g, p, i, s);
  Attributes(g, p, i, s);
  Getters(p, s);
  Shapes(g, p, s);
  Runs(g, p, s);
  TF_Function* f = Negative(g, p, s);
  Gradients(g, p, f, s);
  Functions(f, i, s);
  Loops(g, s);
  Imports(g, s);
  ApiDefs(s);
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* context = TFE_NewContext(options, s);
  CHECK_OK(s);
  TFE_DeleteContextOptions(options);
  AtOnce(context, f, s);
  Policies(context, s);
  TFE_DeleteContext(context);
  TF_DeleteFunction(f);
  TF_DeleteGraph(g);
  TF_DeleteStatus(s);
  printf("wrong_calls: ok\n");
  return 0;
}
