// Polls Scheduled Events once a second, shows every change, and approves what happens to this VM.
//
//   mcs -r:Newtonsoft.Json.dll WatchEvents.cs && mono WatchEvents.exe
//         [--endpoint URL] [--api-version VERSION] [--name VM] [--once] [--yes]
//
// It asks before it approves; --yes approves without asking, --once looks once and ends (with 1 if it could not read).
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Text;
using System.Threading;
using Newtonsoft.Json;

class Document
{
    public string DocumentIncarnation { get; set; }
    public List<Event> Events { get; set; }
}

class Event
{
    public string EventId { get; set; }
    public string EventStatus { get; set; }
    public string EventType { get; set; }
    public List<string> Resources { get; set; }
    public string NotBefore { get; set; }

    // "Mon, 19 Sep 2016 18:29:47 GMT" or "2016-09-19T18:29:47Z"; blank once it has started. The weekday is not to be
    // relied on, and a wrong one would be refused.
    public string NotBeforeUtc()
    {
        if (string.IsNullOrEmpty(NotBefore)) return "-";
        var text = NotBefore.Substring(NotBefore.IndexOf(',') + 1);
        var styles = DateTimeStyles.AssumeUniversal | DateTimeStyles.AdjustToUniversal;
        return DateTime.Parse(text, CultureInfo.InvariantCulture, styles).ToString("yyyy-MM-ddTHH:mm:ssZ");
    }
}

class Client
{
    readonly string endpoint, version, url;

    public Client(string endpoint, string version)
    {
        this.endpoint = endpoint.TrimEnd('/');
        this.version = version;
        url = this.endpoint + "/metadata/scheduledevents?api-version=" + version;
    }

    string Ask(string address, string body = null)
    {
        var request = (HttpWebRequest)WebRequest.Create(address);
        request.Headers.Add("Metadata", "true");
        request.Proxy = null; // The endpoint is never behind one.
        request.Timeout = 120 * 1000; // The first answer may take two minutes.
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

    // What the platform calls this VM, which is what stands in Resources; the host name need not be that.
    public string Name()
    {
        return Ask(endpoint + "/metadata/instance/compute/name?api-version=2021-02-01&format=text").Trim();
    }

    // What is no document, an empty answer too, is an error and not "no events".
    public Document Read()
    {
        var asItCame = new JsonSerializerSettings { DateParseHandling = DateParseHandling.None };
        var document = JsonConvert.DeserializeObject<Document>(Ask(url), asItCame);
        if (document == null || document.Events == null)
            throw new JsonSerializationException("the answer has no list of Events");
        // Names may be missing. At 2017-03-01 they begin with a '_'.
        foreach (var e in document.Events)
            e.Resources = e.Resources ?? new List<string>();
        if (version == "2017-03-01")
            foreach (var e in document.Events)
                e.Resources = e.Resources.ConvertAll(name => name.StartsWith("_") ? name.Substring(1) : name);
        return document;
    }

    // One event a request: where one of several is refused, all are.
    public void Approve(string eventId)
    {
        Ask(url, JsonConvert.SerializeObject(new { StartRequests = new[] { new { EventId = eventId } } }));
    }
}

class WatchEvents
{
    static bool Agreed(Event e)
    {
        Console.Write("approve the {0} {1}? [y/N] ", e.EventType, e.EventId);
        return (Console.ReadLine() ?? "").Trim().ToLowerInvariant() == "y";
    }

    // Whether the approval is settled; if not, it is tried again with the next poll.
    static bool Approve(Client client, Event e)
    {
        try
        {
            client.Approve(e.EventId);
            Console.WriteLine("approved {0}", e.EventId);
            return true;
        }
        catch (WebException error)
        {
            Console.Error.WriteLine("not approved {0}: {1}", e.EventId, error.Message);
            var answer = error.Response as HttpWebResponse;
            return answer != null && answer.StatusCode == HttpStatusCode.BadRequest;
        }
    }

    // Returning from Main waits for the runtime's own threads, on which mono now and then waits for ever.
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
        if (name == null)
        {
            try
            {
                name = client.Name();
            }
            catch (WebException error)
            {
                name = Dns.GetHostName();
                Console.Error.WriteLine("the endpoint does not say what this VM is called ({0}); taking it to be {1}",
                    error.Message, name);
            }
        }

        string shown = null;
        var settled = new HashSet<string>();
        for (; ; Thread.Sleep(1000))
        {
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
            var isNew = document.DocumentIncarnation != shown;
            shown = document.DocumentIncarnation;
            if (isNew && document.Events.Count == 0) Console.WriteLine("{0} nothing", shown);
            foreach (var e in document.Events)
            {
                var mine = e.Resources.Contains(name, StringComparer.OrdinalIgnoreCase);
                if (isNew)
                    Console.WriteLine("{0} {1} {2} {3} {4} {5} {6}", shown, e.EventId, e.EventStatus, e.EventType,
                        string.Join(",", e.Resources), e.NotBeforeUtc(), mine ? "mine" : "others");
                if (!mine || e.EventStatus != "Scheduled" || settled.Contains(e.EventId)) continue;
                if ((!yes && !Agreed(e)) || Approve(client, e)) settled.Add(e.EventId);
            }
            if (once) End(0);
        }
    }
}
