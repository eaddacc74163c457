// Polls Scheduled Events once a second, prints every change, and approves events of this VM.
//
//   mcs -r:Newtonsoft.Json.dll WatchEvents.cs && mono WatchEvents.exe
//         [--endpoint URL] [--api-version VERSION] [--name VM] [--once] [--yes]
//
// It asks before it approves; --yes approves without asking, --once polls once and exits (with 1 if the document or
// this VM's name is unavailable).
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Text;
using System.Threading;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

// Fields may be missing or of another type: they are shown as "-", and other events are still handled.
class Event
{
    public readonly string Id, Status, Type, NotBefore;
    public readonly List<string> Resources;

    public Event(JToken facts, string version)
    {
        Id = Text(facts, "EventId");
        Status = Text(facts, "EventStatus");
        Type = Text(facts, "EventType");
        NotBefore = Text(facts, "NotBefore");
        var names = facts is JObject ? facts["Resources"] : null;
        var list = names is JArray ? (IEnumerable<JToken>)names : new[] { names };
        Resources = list.OfType<JValue>().Select(name => (string)name).Where(name => name != null).ToList();
        // At 2017-03-01 names start with a '_'.
        if (version == "2017-03-01")
            Resources = Resources.ConvertAll(name => name.StartsWith("_") ? name.Substring(1) : name);
    }

    static string Text(JToken facts, string key)
    {
        var value = facts is JObject ? facts[key] as JValue : null;
        var text = value == null ? null : (string)value;
        return string.IsNullOrEmpty(text) ? "-" : text;
    }

    public string Whose(string name)
    {
        if (string.IsNullOrEmpty(name)) return "unknown";
        return Resources.Contains(name, StringComparer.OrdinalIgnoreCase) ? "mine" : "others";
    }

    // "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z"; blank once it has started. The weekday may be wrong
    // and is ignored. Other formats are shown verbatim: nothing depends on them.
    string NotBeforeUtc()
    {
        var text = NotBefore.Substring(NotBefore.IndexOf(',') + 1);
        var styles = DateTimeStyles.AssumeUniversal | DateTimeStyles.AdjustToUniversal;
        DateTime when;
        if (!DateTime.TryParse(text, CultureInfo.InvariantCulture, styles, out when)) return NotBefore;
        return when.ToString("yyyy-MM-ddTHH:mm:ssZ", CultureInfo.InvariantCulture);
    }

    public override string ToString()
    {
        return string.Join(" ", Id, Status, Type, string.Join(",", Resources), NotBeforeUtc());
    }
}

class Document
{
    public readonly string Incarnation;
    public readonly List<Event> Events;

    // Anything but a document, also an empty response, is an error and not "no events".
    public Document(string text, string version)
    {
        var asItCame = new JsonSerializerSettings { DateParseHandling = DateParseHandling.None };
        var document = JsonConvert.DeserializeObject<JToken>(text, asItCame) as JObject;
        var events = document == null ? null : document["Events"] as JArray;
        if (events == null) throw new JsonSerializationException("the answer has no list of Events");
        Incarnation = Convert.ToString(document["DocumentIncarnation"], CultureInfo.InvariantCulture);
        Events = events.Select(facts => new Event(facts, version)).ToList();
    }

    // The events as text, for a VM of this name.
    public string Shown(string name)
    {
        if (Events.Count == 0) return Incarnation + " nothing";
        return string.Join("\n", Events.Select(e => Incarnation + " " + e + " " + e.Whose(name)));
    }
}

class Client
{
    // The first response may take two minutes; the VM's name is answered at once or requested again.
    const int TimeoutSeconds = 120, NameTimeoutSeconds = 2;
    readonly string endpoint, version, url;

    public Client(string endpoint, string version)
    {
        this.endpoint = endpoint.TrimEnd('/');
        this.version = version;
        url = this.endpoint + "/metadata/scheduledevents?api-version=" + version;
    }

    string Ask(string address, string body = null, int seconds = TimeoutSeconds)
    {
        var request = (HttpWebRequest)WebRequest.Create(address);
        request.Headers.Add("Metadata", "true");
        request.Proxy = null; // The endpoint is never behind one.
        request.Timeout = seconds * 1000;
        if (body != null)
        {
            request.Method = "POST";
            request.ContentType = "application/json";
            var bytes = Encoding.UTF8.GetBytes(body);
            using (var stream = request.GetRequestStream()) stream.Write(bytes, 0, bytes.Length);
        }
        using (var answer = request.GetResponse())
        using (var reader = new StreamReader(answer.GetResponseStream()))
            return reader.ReadToEnd();
    }

    // The platform's name of this VM, as used in Resources. The host name may differ and may be another VM's name.
    // Null if unavailable.
    public string Name()
    {
        var address = endpoint + "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
        var why = "the answer is empty";
        try
        {
            var name = Ask(address, seconds: NameTimeoutSeconds).Trim();
            if (name != "") return name;
        }
        catch (Exception error) when (error is WebException || error is IOException)
        {
            why = error.Message;
        }
        Console.Error.WriteLine("{0} does not say what this VM is called ({1}); until it does, or --name says it, " +
            "nothing is approved", endpoint, why);
        return null;
    }

    public Document Read()
    {
        return new Document(Ask(url), version);
    }

    // One event per request: if one of several is refused, all are.
    public void Approve(string eventId)
    {
        Ask(url, JsonConvert.SerializeObject(new { StartRequests = new[] { new { EventId = eventId } } }));
    }
}

class WatchEvents
{
    static bool Agreed(Event e)
    {
        Console.Write("approve the {0} {1}? [y/N] ", e.Type, e.Id);
        return (Console.ReadLine() ?? "").Trim().ToLowerInvariant() == "y";
    }

    // Whether the approval is final; if not, it is retried with the next poll.
    static bool Approve(Client client, Event e)
    {
        try
        {
            client.Approve(e.Id);
            Console.WriteLine("approved {0}", e.Id);
            return true;
        }
        catch (Exception error) when (error is WebException || error is IOException)
        {
            Console.Error.WriteLine("not approved {0}: {1}", e.Id, error.Message);
            var refusal = error as WebException;
            var answer = refusal == null ? null : refusal.Response as HttpWebResponse;
            return answer != null && answer.StatusCode == HttpStatusCode.BadRequest;
        }
    }

    // Returning from Main waits for the runtime's threads, on which mono sometimes hangs.
    static void End(int code)
    {
        Environment.Exit(code);
    }

    static string Option(List<string> words, string name, string otherwise)
    {
        var at = words.IndexOf(name);
        return at >= 0 && at + 1 < words.Count ? words[at + 1] : otherwise;
    }

    static void Main(string[] arguments)
    {
        var words = arguments.ToList();
        var endpoint = Option(words, "--endpoint", "http://169.254.169.254");
        var client = new Client(endpoint, Option(words, "--api-version", "2020-07-01"));
        var name = Option(words, "--name", null);
        bool once = words.Contains("--once"), yes = words.Contains("--yes");
        string shown = null;
        var settled = new HashSet<string>();
        for (; ; Thread.Sleep(1000))
        {
            name = name ?? client.Name();
            Document document;
            try
            {
                document = client.Read();
            }
            catch (Exception error) when (error is WebException || error is IOException || error is JsonException)
            {
                Console.Error.WriteLine("no document from {0}: {1}", endpoint, error.Message);
                if (once) End(1);
                continue;
            }
            var toShow = document.Shown(name);
            if (toShow != shown) Console.WriteLine(toShow);
            shown = toShow;
            foreach (var e in document.Events)
            {
                if (e.Whose(name) != "mine" || e.Status != "Scheduled") continue;
                if (e.Id == "-" || settled.Contains(e.Id)) continue;
                if ((!yes && !Agreed(e)) || Approve(client, e)) settled.Add(e.Id);
            }
            if (once) End(name == null ? 1 : 0);
        }
    }
}
