// Functions, loops and gradients.
#include "check.h"

// f(a, b) = a + b.
static TF_Function* AddFunction(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output inputs[2];
  inputs[0] = First(Placeholder(g, "Feed1", TF_INT32, s));
  inputs[1] = First(Placeholder(g, "Feed2", TF_INT32, s));
  TF_Output sum = First(Binary(g, "AddV2", "add", inputs[0], inputs[1], s));
  CHECK_OK(s);
  const char* names[] = {"sum"};
  TF_Function* f = TF_GraphToFunction(g, "AddThem", 0, -1, NULL, 2, inputs, 1,
                                      &sum, names, NULL, "adds", s);
  CHECK_OK(s);
  CHECK(strcmp(TF_FunctionName(f), "AddThem") == 0);
  // Twice the same input; an output name that is not unique.
  TF_Output twice[2] = {inputs[0], inputs[0]};
  CHECK(TF_GraphToFunction(g, "f", 0, -1, NULL, 2, twice, 1, &sum, names, NULL,
                           NULL, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "more than once in the input list");
  // What the body reads must be in it.
  TF_Operation* body[] = {sum.oper};
  CHECK(TF_GraphToFunction(g, "f", 0, 1, (const TF_Operation* const*)body, 1,
                           inputs, 1, &sum, names, NULL, NULL, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "Feed2:0");
  TF_DeleteGraph(g);
  return f;
}

static void Calls(TF_Status* s) {
  TF_Function* f = AddFunction(s);
  // As bytes and back.
  TF_Buffer* def = TF_NewBuffer();
  TF_FunctionToFunctionDef(f, def, s);
  CHECK_OK(s);
  TF_DeleteFunction(f);
  f = TF_FunctionImportFunctionDef(def->data, def->length, s);
  CHECK_OK(s);
  TF_DeleteBuffer(def);
  // An attribute of the function: AttrValue{s: "x"}.
  TF_FunctionSetAttrValueProto(f, "_note", "\x12\x01x", 3, s);
  CHECK_OK(s);
  TF_Buffer* attr = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(f, "_note", attr, s);
  CHECK_OK(s);
  CHECK(attr->length == 3 && memcmp(attr->data, "\x12\x01x", 3) == 0);
  TF_FunctionGetAttrValueProto(f, "none", attr, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Function 'AddThem' has no attr named 'none'.");
  TF_DeleteBuffer(attr);

  TF_Graph* g = TF_NewGraph();
  TF_GraphCopyFunction(g, f, NULL, s);
  CHECK_OK(s);
  TF_DeleteFunction(f);
  CHECK(TF_GraphNumFunctions(g) == 1);
  TF_Function* found[1];
  CHECK(TF_GraphGetFunctions(g, found, 1, s) == 1);
  CHECK(strcmp(TF_FunctionName(found[0]), "AddThem") == 0);
  TF_DeleteFunction(found[0]);
  TF_Output feed = First(Placeholder(g, "feed", TF_INT32, s));
  TF_Output two = First(Const(g, "two", Int32(2), s));
  TF_OperationDescription* d = TF_NewOperation(g, "AddThem", "call");
  TF_AddInput(d, two);
  TF_AddInput(d, feed);
  TF_Operation* call = TF_FinishOperation(d, s);
  CHECK_OK(s);
  TF_Session* session = Session(g, s);
  TF_Tensor* three = Int32(3);
  TF_Tensor* out = RunOne(session, feed, three, First(call), s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(out) == 5);
  TF_DeleteTensor(out);
  TF_DeleteTensor(three);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
}

// while (i < 10) { i += step }
static void Loop(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output inputs[2];
  inputs[0] = First(Placeholder(g, "start", TF_INT32, s));
  inputs[1] = First(Placeholder(g, "step", TF_INT32, s));
  CHECK_OK(s);
  TF_WhileParams params = TF_NewWhile(g, inputs, 2, s);
  CHECK_OK(s);
  CHECK(params.ninputs == 2);
  TF_Output ten = First(Const(params.cond_graph, "ten", Int32(10), s));
  params.cond_output = First(
      Binary(params.cond_graph, "Less", "less", params.cond_inputs[0], ten, s));
  CHECK_OK(s);
  TF_Output one = First(Const(params.body_graph, "zero", Int32(0), s));
  TF_Output step = First(Binary(params.body_graph, "AddV2", "step",
                                params.body_inputs[1], one, s));
  params.body_outputs[0] = First(Binary(params.body_graph, "AddV2", "next",
                                        params.body_inputs[0], step, s));
  params.body_outputs[1] = params.body_inputs[1];
  CHECK_OK(s);
  params.name = "loop";
  TF_Output outputs[2];
  TF_FinishWhile(&params, s, outputs);
  CHECK_OK(s);
  TF_Session* session = Session(g, s);
  TF_Tensor* values[] = {Int32(1), Int32(4)};
  TF_Tensor* results[2];
  TF_SessionRun(session, NULL, inputs, values, 2, outputs, results, 2, NULL, 0,
                NULL, s);
  CHECK_OK(s);
  CHECK(*(int32_t*)TF_TensorData(results[0]) == 13);
  CHECK(*(int32_t*)TF_TensorData(results[1]) == 4);
  for (int i = 0; i < 2; ++i) {
    TF_DeleteTensor(values[i]);
    TF_DeleteTensor(results[i]);
  }
  TF_DeleteSession(session, s);
  // Left unfinished, and finished without its parts.
  TF_WhileParams left = TF_NewWhile(g, inputs, 2, s);
  CHECK_OK(s);
  TF_AbortWhile(&left);
  TF_WhileParams empty = TF_NewWhile(g, inputs, 2, s);
  CHECK_OK(s);
  empty.name = "other";
  TF_FinishWhile(&empty, s, outputs);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "`cond_output` field isn't set");
  TF_DeleteGraph(g);
}

// d(x * x * w)/dx and /dw.
static void Gradients(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  const float w_value = 3;
  TF_Output w = First(Const(g, "w", Floats(NULL, 0, &w_value), s));
  TF_Output square = First(Binary(g, "Mul", "square", x, x, s));
  TF_Output y = First(Binary(g, "Mul", "y", square, w, s));
  CHECK_OK(s);
  TF_Output sources[] = {x, w};
  TF_Output dy[2];
  TF_AddGradients(g, &y, 1, sources, 2, NULL, s, dy);
  CHECK_OK(s);
  CHECK(strncmp(TF_OperationName(dy[0].oper), "gradients/", 10) == 0);
  TF_Session* session = Session(g, s);
  const float x_value = 5;
  TF_Tensor* in = Floats(NULL, 0, &x_value);
  TF_Tensor* dx = RunOne(session, x, in, dy[0], s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(dx) == 30.0f);
  TF_DeleteTensor(dx);
  TF_Tensor* dw = RunOne(session, x, in, dy[1], s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(dw) == 25.0f);
  TF_DeleteTensor(dw);
  // With a gradient that arrives, under a prefix.
  TF_Output two = First(Binary(g, "AddV2", "six", w, w, s));
  TF_AddGradientsWithPrefix(g, "mine", &y, 1, &x, 1, &two, s, dy);
  CHECK_OK(s);
  CHECK(strncmp(TF_OperationName(dy[0].oper), "mine/", 5) == 0);
  dx = RunOne(session, x, in, dy[0], s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(dx) == 180.0f);
  TF_DeleteTensor(dx);
  TF_AddGradientsWithPrefix(g, "mine", &y, 1, &x, 1, NULL, s, dy);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "prefix [mine] conflicts with existing");
  TF_Output alone = First(Placeholder(g, "alone", TF_FLOAT, s));
  TF_AddGradients(g, &y, 1, &alone, 1, NULL, s, dy);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "unreachable");
  TF_DeleteTensor(in);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
}

int main(void) {
  TF_Status* s = TF_NewStatus();
  Calls(s);
  Loop(s);
  Gradients(s);
  TF_DeleteStatus(s);
  printf("functions: ok\n");
  return 0;
}
