// Makes the calls in CALLS with openapi-generator's Kotlin client, and prints each result.
import java.io.File
import java.lang.reflect.InvocationTargetException
import kotlin.reflect.full.functions
import kotlin.reflect.full.primaryConstructor
import kotlin.reflect.jvm.javaType
import org.openapitools.client.infrastructure.ApiClient
import org.openapitools.client.infrastructure.ClientError
import org.openapitools.client.infrastructure.ClientException
import org.openapitools.client.infrastructure.Serializer

val any = Serializer.moshi.adapter(Any::class.java).serializeNulls()!!

fun main() {
    ApiClient.apiKey["X-API-Key"] = System.getenv("API_KEY")
    val calls = any.fromJson(File(System.getenv("CALLS")).readText()) as List<*>
    println(any.toJson(calls.map { given(it as Map<*, *>) }))
    System.exit(0) // otherwise, OkHttp's threads run for another minute
}

fun given(call: Map<*, *>): Map<String, Any?> {
    val api = Class.forName("org.openapitools.client.apis.${call["tag"]}Api").kotlin
    val instance = api.primaryConstructor!!.let { it.callBy(mapOf(it.parameters[0] to System.getenv("BASE_URL"))) }
    val function = api.functions.first { it.name == call["operation"] }
    val sent = (call["parameters"] as Map<*, *>).mapKeys { camel(it.key as String) } + mapOf("profileChanges" to call["body"])
    val arguments = function.parameters.drop(1).filter { sent[it.name] != null }.associateWith {
        Serializer.moshi.adapter<Any>(it.type.javaType).fromJsonValue(sent[it.name])
    }
    return try {
        val result = function.callBy(mapOf(function.parameters[0] to instance) + arguments)
        val adapter = Serializer.moshi.adapter<Any>(function.returnType.javaType).serializeNulls()
        mapOf("status" to 200, "body" to adapter.toJsonValue(result))
    } catch (thrown: InvocationTargetException) {
        val error = (thrown.cause as ClientException).response as ClientError<*>
        mapOf("status" to error.statusCode, "body" to any.fromJson(error.body as String))
    }
}

fun camel(name: String) = name.replace(Regex("_([a-z])")) { it.groupValues[1].uppercase() }
