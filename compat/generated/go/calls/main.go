// Makes the calls in CALLS with oapi-codegen's client, and prints each result.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	"example.com/generated/api"
)

type call struct {
	Operation  string
	Parameters map[string]json.RawMessage
	Body       json.RawMessage
}

func main() {
	withKey := api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("X-API-Key", os.Getenv("API_KEY"))
		return nil
	})
	client := must(api.NewClientWithResponses(os.Getenv("BASE_URL"), withKey))
	var calls []call
	check(json.Unmarshal(must(os.ReadFile(os.Getenv("CALLS"))), &calls))
	given := []map[string]any{}
	for _, one := range calls {
		name := strings.ToUpper(one.Operation[:1]) + one.Operation[1:] + "WithResponse"
		given = append(given, resultOf(reflect.ValueOf(client).MethodByName(name), one))
	}
	fmt.Println(string(must(json.Marshal(given))))
}

// resultOf calls a method of the client: a context, the path's values, the other parameters, and the body.
func resultOf(method reflect.Value, one call) map[string]any {
	arguments := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < method.Type().NumIn()-1; i++ {
		argument := reflect.New(method.Type().In(i))
		sent := must(json.Marshal(one.Parameters))
		switch argument.Elem().Kind() {
		case reflect.Int64:
			sent = one.Parameters["id"]
		case reflect.String:
			sent = one.Parameters["code"]
		case reflect.Struct:
			sent = one.Body
		}
		check(json.Unmarshal(sent, argument.Interface()))
		arguments = append(arguments, argument.Elem())
	}
	results := method.Call(arguments)
	if err := results[1].Interface(); err != nil {
		panic(err)
	}
	response := results[0].Elem()
	// The field of the status has the decoded body: JSON200, ApplicationproblemJSON404.
	for i := range response.NumField() {
		field := response.Field(i)
		if strings.Contains(response.Type().Field(i).Name, "JSON") && !field.IsNil() {
			status := response.FieldByName("HTTPResponse").Interface().(*http.Response).StatusCode
			return map[string]any{"status": status, "body": field.Interface()}
		}
	}
	return nil
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
